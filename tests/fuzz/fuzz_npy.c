/* fuzz_npy.c: NPY headers, elements in both orders, and the array as an image. */
#include "tests/fuzz/expect.h"

#include "compute/codecs/npy.h"

/* A header that was accepted is written and read back. */
static void header_check(const struct npy *npy) {
    uint8_t out[NPY_WRITE_MAX];
    char type[8], why[160];
    struct npy again;
    snprintf(type, sizeof type, "%c%c%u", npy->item > 1 ? '<' : '|', npy->kind,
             (unsigned)npy->item);
    size_t size = npy_write_header(out, sizeof out, type, npy->shape, npy->dimensions);
    EXPECT(size > 0 && size % 64 == 0);
    EXPECT(npy_parse(out, size, false, &again, why, sizeof why) == KILN_OK);
    EXPECT(again.kind == npy->kind && again.item == npy->item && again.count == npy->count);
    EXPECT(again.data == size && again.dimensions == npy->dimensions);
    EXPECT(memcmp(again.shape, npy->shape, npy->dimensions * sizeof npy->shape[0]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct npy npy, head;
    char why[160] = "";
    enum kiln_status status = npy_parse(data, size, true, &npy, why, sizeof why);
    EXPECT(status == KILN_OK || (status == KILN_MALFORMED && why_good(why, sizeof why)));
    enum kiln_status partial = npy_parse(data, size, false, &head, why, sizeof why);
    EXPECT(status != KILN_OK || partial == KILN_OK);
    if (partial == KILN_OK) {
        header_check(&head);
    }
    if (status == KILN_OK) {
        EXPECT(npy.data <= size && npy.count * npy.item <= size - npy.data);
        volatile double sum = 0;
        for (uint64_t i = 0; i < npy.count && i < 4096; i++) {
            sum += npy_element(&npy, data, i);
        }
        if (npy.count > 0) {
            sum += npy_element(&npy, data, npy.count - 1);
        }
    }
    image_check(data, size, FORMAT_NPY);
    return 0;
}

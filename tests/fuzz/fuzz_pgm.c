/* fuzz_pgm.c: Netpbm images through probe, read, write and read again. */
#include "tests/fuzz/expect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    image_check(data, size, FORMAT_PGM);
    return 0;
}

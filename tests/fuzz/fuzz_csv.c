/* fuzz_csv.c: light curves as text, into arrays of exactly the promised size. */
#include "tests/fuzz/expect.h"

#include "compute/codecs/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    char why[160] = "";
    uint64_t bound = csv_rows_bound(text, size), rows = 0;
    int columns = 0;
    EXPECT(bound >= 1 && bound <= size + 1);
    double *values[3];
    for (int i = 0; i < 3; i++)
        EXPECT((values[i] = malloc(bound * sizeof(double))) != NULL);
    enum kiln_status status = csv_read(text, size, values[0], values[1], values[2], bound, &rows,
                                       &columns, why, sizeof why);
    EXPECT(status == KILN_OK || (status == KILN_MALFORMED && why_good(why, sizeof why)));
    EXPECT(rows <= bound && (columns == 2 || columns == 3));
    const char *reason = strchr(why, ':'); /* the rest of it, because text may be quoted there */
    EXPECT(!reason || strcmp(reason, ": there are more rows than fit") != 0);
    volatile double sum = 0;
    for (uint64_t row = 0; row < rows; row++)
        for (int i = 0; i < columns; i++)
            sum += values[i][row];
    for (int i = 0; i < 3; i++)
        free(values[i]);
    return 0;
}

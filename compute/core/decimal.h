/*
 * decimal.h: doubles to decimal text and back, exactly and without a locale.
 *
 * Printing gives the fewest digits that read back as the same number, and among those the nearest
 * (Schubfach: Raffaello Giulietti, "The Schubfach way to render doubles", 2021). Reading is
 * correctly rounded for any number of digits: an exact quotient or product where the digits allow
 * it, else a 192-bit product with an error interval, and strtod only where that interval contains a
 * midpoint of two doubles.
 *
 * Threads: reentrant; the table of powers is made once, on first use.
 */
#ifndef KILN_COMPUTE_CORE_DECIMAL_H
#define KILN_COMPUTE_CORE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

/** Longest text of decimal_print and decimal_print_float, with the NUL. */
#define DECIMAL_MAX 32

/** Writes the shortest decimal of a finite value as JavaScript would ("0.1", "1e21", "-0") with a
    NUL; returns its length. */
size_t decimal_print(double value, char out[DECIMAL_MAX]);
/** The same for a float: the shortest decimal that reads back as this float. */
size_t decimal_print_float(float value, char out[DECIMAL_MAX]);

/** Reads the longest prefix of the form [+-]digits[.digits][e[+-]digits], where digits may be
    missing on one side of the point; returns its length, 0 if there is none. Values past a
    double's range become infinite. */
size_t decimal_read(const char *text, size_t size, double *value);

#endif

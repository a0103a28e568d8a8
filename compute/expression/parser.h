/*
 * parser.h: a text to a graph and the values that it asks for.
 *
 * Threads: one owner.
 */
#ifndef KILN_COMPUTE_EXPRESSION_PARSER_H
#define KILN_COMPUTE_EXPRESSION_PARSER_H

#include "compute/expression/graph.h"

struct results {
    size_t count;
    uint16_t values[EXPRESSION_OUTPUTS];
};

/** Reads a text; a failure stands in the graph. */
void parser_run(struct graph *graph, const char *text, size_t size, struct results *results,
                struct expression_names *names);

#endif

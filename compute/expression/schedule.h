/*
 * schedule.h: a graph to a program: which loops there are, what each computes and keeps.
 *
 * A loop (stage) goes over one shape. What is reduced, or repeated by broadcasting, is computed in
 * an earlier stage and kept in a temporary, so nothing is computed twice for an element; other
 * values are computed where they are used. Values of one shape at one level share a stage.
 *
 * Threads: the graph's owner. Memory: struct schedule.
 */
#ifndef KILN_COMPUTE_EXPRESSION_SCHEDULE_H
#define KILN_COMPUTE_EXPRESSION_SCHEDULE_H

#include "compute/expression/parser.h"

#define SCHEDULE_SINKS (EXPRESSION_OUTPUTS + GRAPH_VALUES)
#define NO_ARRAY       UINT16_MAX

/** A value that a stage keeps in an array. */
struct sink {
    uint16_t value, array, level;
    bool reduces; /* else it is stored as it is */
    bool done;
};

struct schedule {
    struct graph *graph;
    struct expression_program *program;
    bool needed[GRAPH_VALUES];    /* by the results */
    bool kept[GRAPH_VALUES];      /* in an array, to be read by later stages */
    uint16_t level[GRAPH_VALUES]; /* of the stage that can compute it */
    uint16_t array[GRAPH_VALUES]; /* where it is kept */
    size_t sink_count;
    struct sink sinks[SCHEDULE_SINKS];
    /* The stage that is being written. */
    uint8_t space;               /* a shape of the graph */
    unsigned axes;               /* that it reduces */
    bool inside[GRAPH_VALUES];   /* computed in it */
    uint16_t uses[GRAPH_VALUES]; /* by instructions to come */
    uint8_t slot[GRAPH_VALUES];  /* of those computed */
    uint64_t registers;          /* bits of those that are free */
};

/** Writes the program. A failure stands in the graph. */
void schedule_run(struct schedule *schedule, struct graph *graph, const struct results *results,
                  struct expression_program *program);

#endif

/*
 * stage.h: what schedule.c and stage.c share.
 */
#ifndef KILN_COMPUTE_EXPRESSION_STAGE_H
#define KILN_COMPUTE_EXPRESSION_STAGE_H

#include "compute/expression/schedule.h"

#define EXPRESSION_STAGE_SINKS 32

bool value_reduces(const struct value *value);
/** Whether a stage over the shape `space` reads this operand from an array. */
bool value_loads(const struct graph *graph, uint16_t operand, uint8_t space);
/** Writes the stage of schedule->space and ->axes that makes these sinks. */
void stage_write(struct schedule *schedule, struct sink *const *sinks, size_t count);

#endif

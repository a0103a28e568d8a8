/*
 * cancel.c: the thread's cancellation request. Any thread.
 */
#include "compute/core/cancel.h"

static _Thread_local struct cancel *current;

void cancel_begin(struct cancel *cancel, enum kiln_status (*ask)(void *context), void *context) {
    *cancel = (struct cancel){.ask = ask, .context = context, .status = KILN_OK, .left = 0};
    current = cancel;
}

enum kiln_status cancel_end(void) {
    enum kiln_status status = current != NULL ? current->status : KILN_OK;
    current = NULL;
    return status;
}

bool cancel_point(size_t bytes) {
    struct cancel *cancel = current;
    if (cancel == NULL) {
        return false;
    }
    if (cancel->status != KILN_OK) {
        return true;
    }
    if (bytes < cancel->left) {
        cancel->left -= bytes;
        return false;
    }
    cancel->left = CANCEL_STRIDE;
    cancel->status = cancel->ask(cancel->context);
    return cancel->status != KILN_OK;
}

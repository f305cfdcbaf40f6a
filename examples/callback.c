/* SPDX-License-Identifier: MIT */
/* callback - wait without blocking: whoever releases calls us back. */
#include "example.h"

// [begin]
struct request {
    struct weir_op op; // the record of the wait, provided by us
    const char *name;
};

static struct weir_sem slots = WEIR_SEM_INIT(1);

static void have_slot(struct weir_op *op, int result)
{
    struct request *request = (struct request *)op; // first member

    if (result == 0) {
        printf("%s: has the slot\n", request->name);
        weir_sem_release(&slots, 1);
    }
}

static void submit(struct request *request)
{
    struct weir_op *op = &request->op;
    int r = weir_sem_acquire_async(&slots, 1, op, have_slot);

    if (r == 1) // had at once: nobody will call back
        have_slot(op, 0);
    else if (r == 0)
        printf("%s: in line\n", request->name);
}
// [end]

int main(void)
{
    struct request first = {WEIR_OP_INIT, "first"};
    struct request second = {WEIR_OP_INIT, "second"};
    struct request third = {WEIR_OP_INIT, "third"};

    submit(&first);
    MUST(weir_sem_try_acquire(&slots, 1) == 0);
    submit(&second);
    submit(&third);
    puts("main: releases");
    weir_sem_release(&slots, 1); // both are called from in here, in order
    puts("main: goes on");
    return 0;
}

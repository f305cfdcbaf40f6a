/* SPDX-License-Identifier: MIT */
/* say - what the command tells people, on standard error, in one sentence. */
#ifndef WEIR_CLI_SAY_H
#define WEIR_CLI_SAY_H

/* Exit statuses of weir's own; see weir(1). */
enum {
    EXIT_LOST = 120,        /* the lease was lost and the command stopped */
    EXIT_UNREACHABLE = 121, /* the store cannot be reached                */
    EXIT_MISMATCH = 122,    /* the name has another limit                 */
    EXIT_SOME_FAILED = 123, /* some job failed                            */
    EXIT_BUSY = 124,        /* no slot in time                            */
    EXIT_WEIR = 125,        /* weir's own error, or bad usage             */
    EXIT_CANNOT_RUN = 126,  /* the command cannot be executed             */
    EXIT_NOT_FOUND = 127,   /* there is no such command                   */
    EXIT_SIGNAL = 128,      /* plus the signal that it died of            */
};

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End the program because a call to the store failed: the sentence that the store has for
 * it, or the error's name, and the exit status that goes with it. */
_Noreturn void fail_store(int r, const char *name);

#endif

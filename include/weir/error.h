/* SPDX-License-Identifier: MIT */
/* weir/error.h - what a weir call can return.
 *
 * Every weir function that can fail returns an int: 0 (or a count) on success,
 * one of the negative constants below on failure.  Each constant is a negated
 * errno; a failure that the kernel reported is returned as its own negated
 * errno.  A failed call has changed nothing: no permit is held, no output
 * argument is written.  The one exception is a wait on a barrier or latch, whose
 * failure breaks it, as their headers say.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <errno.h>

#include <weir/visibility.h>

WEIR_BEGIN

enum {
    WEIR_OK = 0,
    WEIR_EAGAIN = -EAGAIN,             /* a try_ call would have had to wait      */
    WEIR_ETIMEDOUT = -ETIMEDOUT,       /* the deadline passed first               */
    WEIR_ECANCELED = -ECANCELED,       /* the waiting task was cancelled          */
    WEIR_EINVAL = -EINVAL,             /* an argument that can never work         */
    WEIR_EOVERFLOW = -EOVERFLOW,       /* more given back than was open           */
    WEIR_EBROKEN = -ENOTRECOVERABLE,   /* the barrier or latch is broken          */
    WEIR_ECLOSED = -ESHUTDOWN,         /* the object was closed                   */
    WEIR_ENOTHELD = -ESTALE,           /* this lease or session is not held       */
    WEIR_EMISMATCH = -EEXIST,          /* the name exists with another limit      */
    WEIR_ECONTEXT = -EDEADLK,          /* not possible here: in a callback, or outside a task */
    WEIR_EUNREACHABLE = -EHOSTUNREACH, /* the store's server cannot be reached    */
    WEIR_EBUSY = -EBUSY,               /* refused at once: queue full, quota used */
    WEIR_ELIMIT = -EDQUOT,             /* a session went over one of its limits   */
    WEIR_ENOMEM = -ENOMEM,             /* out of memory                           */
    WEIR_ENOSPC = -ENOSPC,             /* out of room                             */
    WEIR_EPERM = -EPERM,               /* not allowed                             */
    WEIR_EPROTO = -EPROTO              /* the other side speaks nonsense          */
};

/* One short English phrase for a weir result; never NULL, never freed.  Any
 * number is understood: what is none of the above is described as the errno it
 * negates, or as unknown. */
WEIR_API const char *weir_strerror(int result);

WEIR_END

#endif

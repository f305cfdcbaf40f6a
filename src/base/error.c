/* SPDX-License-Identifier: MIT */
#include <weir/error.h>

#include <string.h>

const char *weir_strerror(int result)
{
    /* clang-format off */
    switch (result) {
    case WEIR_OK:           return "success";
    case WEIR_EAGAIN:       return "would have to wait";
    case WEIR_ETIMEDOUT:    return "timed out";
    case WEIR_ECANCELED:    return "cancelled";
    case WEIR_EINVAL:       return "invalid argument";
    case WEIR_EOVERFLOW:    return "more given back than was open";
    case WEIR_EBROKEN:      return "barrier or latch is broken";
    case WEIR_ECLOSED:      return "closed";
    case WEIR_ENOTHELD:     return "not held";
    case WEIR_EMISMATCH:    return "the name exists with another limit";
    case WEIR_ECONTEXT:     return "not possible here: in a callback, or outside a task";
    case WEIR_EUNREACHABLE: return "the store's server cannot be reached";
    case WEIR_EBUSY:        return "busy";
    case WEIR_ELIMIT:       return "a limit of the session was exceeded";
    case WEIR_ENOMEM:       return "out of memory";
    case WEIR_ENOSPC:       return "out of room";
    case WEIR_EPERM:        return "not allowed";
    case WEIR_EPROTO:       return "protocol error";
    }
    /* clang-format on */

    /* A name from a table, not strerror(): that one may write into a buffer which
     * all threads share. */
    const char *kernels = result < 0 && result > -4096 ? strerrordesc_np(-result) : NULL;
    return kernels ? kernels : result > 0 ? "success" : "unknown error";
}

/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BASE_CONTAINER_H
#define WEIR_BASE_CONTAINER_H

#include <stddef.h>

/* The struct that a member lives in. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif

/* SPDX-License-Identifier: MIT */
/* weir/version.h - which weir this is. */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

#include <weir/visibility.h>

WEIR_BEGIN

/* The headers that the program was compiled with. */
#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION       "0.1.0"

/* The library that it runs with, in the form of WEIR_VERSION. */
WEIR_API const char *weir_version(void);

WEIR_END

#endif

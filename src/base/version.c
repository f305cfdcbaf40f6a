/* SPDX-License-Identifier: MIT */
#include <weir/version.h>

const char *weir_version(void)
{
    return WEIR_VERSION;
}

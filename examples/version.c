/* SPDX-License-Identifier: MIT */
/* version - is the library that runs the one that the program was compiled for? */
#include <string.h>

#include "example.h"

int main(void)
{
    // [begin]
    if (strcmp(weir_version(), WEIR_VERSION) == 0)
        puts("headers and library agree");
    else
        printf("made for " WEIR_VERSION ", run by %s\n", weir_version());
    // [end]
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* What no program can survive: one line on stderr, then abort.  For misuse that a
 * program can be told about there are error codes. */
#ifndef WEIR_BASE_BUG_H
#define WEIR_BASE_BUG_H

_Noreturn void bug(const char *what);

#define BUG(what) bug("weir: BUG: " what "\n")

#endif

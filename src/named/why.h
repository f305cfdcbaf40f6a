/* SPDX-License-Identifier: MIT */
/* why - the sentence behind an error, for weir_store_why(). */
#ifndef WEIR_NAMED_WHY_H
#define WEIR_NAMED_WHY_H

/* Remember the sentence, and return r. */
int why(int r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void why_clear(void);

#endif

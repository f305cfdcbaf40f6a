/* SPDX-License-Identifier: MIT */
/* Lock annotations.  Under clang, -Wthread-safety proves them (`make lint`);
 * under gcc they are comments with a fixed spelling.  UNCHECKED is for what the
 * analysis cannot follow: the lock itself, and a queue locked under another name. */
#ifndef WEIR_BASE_ANNOTATE_H
#define WEIR_BASE_ANNOTATE_H

#if defined(__clang__) && defined(WEIR_BUILDING)
#define ACQUIRES(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define RELEASES(...) __attribute__((release_capability(__VA_ARGS__)))
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define UNCHECKED     __attribute__((no_thread_safety_analysis))
#else
#define ACQUIRES(...)
#define RELEASES(...)
#define REQUIRES(...)
#define UNCHECKED
#endif

#endif

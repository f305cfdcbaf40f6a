/* SPDX-License-Identifier: MIT */
/* Which sanitizer this is compiled with: 0 or 1 each, for gcc and for clang. */
#ifndef WEIR_HARNESS_SANITIZER_H
#define WEIR_HARNESS_SANITIZER_H

#ifdef __has_feature
#define HAS_FEATURE_(name) __has_feature(name)
#else
#define HAS_FEATURE_(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE_(address_sanitizer)
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || HAS_FEATURE_(thread_sanitizer)
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif

#endif

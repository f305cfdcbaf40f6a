/* SPDX-License-Identifier: MIT */
/* weir/visibility.h - what the declarations in every other header are made of. */
#ifndef WEIR_VISIBILITY_H
#define WEIR_VISIBILITY_H

#define WEIR_API          __attribute__((visibility("default")))
#define WEIR_MUST_CHECK   __attribute__((warn_unused_result))
#define WEIR_NONNULL(...) __attribute__((nonnull(__VA_ARGS__)))

/* Lock annotations are checked when weir itself is built with clang. */
#if defined(__clang__) && defined(WEIR_BUILDING)
#define WEIR_CAPABILITY_(name) __attribute__((capability(name)))
#else
#define WEIR_CAPABILITY_(name)
#endif

#ifdef __cplusplus
#define WEIR_BEGIN extern "C" {
#define WEIR_END   }
#else
#define WEIR_BEGIN
#define WEIR_END
#endif

#endif

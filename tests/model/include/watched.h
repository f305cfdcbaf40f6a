/* SPDX-License-Identifier: MIT */
/* Included before everything else in what the explorer watches. */
#ifndef WEIR_MODEL_WATCHED_H
#define WEIR_MODEL_WATCHED_H

/* A section that the explorer exchanges when it switches from one flow to another. */
#define __thread __attribute__((section("model_tls")))

/* Descriptors are steps as well; see kernel.c.  The names change in the system's headers too,
 * so these come with the right declarations. */
#define eventfd model_eventfd
#define read    model_read
#define write   model_write
#define close   model_close

#endif

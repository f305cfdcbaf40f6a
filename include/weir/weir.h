/* SPDX-License-Identifier: MIT */
/* weir/weir.h - all of weir.  Each header opens with its contract. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/barrier.h>
#include <weir/cond.h>
#include <weir/countdown.h>
#include <weir/error.h>
#include <weir/event.h>
#include <weir/io.h>
#include <weir/latch.h>
#include <weir/loop.h>
#include <weir/map.h>
#include <weir/mutex.h>
#include <weir/observe.h>
#include <weir/op.h>
#include <weir/process.h>
#include <weir/scope.h>
#include <weir/sem.h>
#include <weir/store.h>
#include <weir/task.h>
#include <weir/testing.h>
#include <weir/time.h>
#include <weir/version.h>

#endif

/* SPDX-License-Identifier: MIT */
/* inside_libuv - tasks inside a libuv program. */
#include <uv.h>

#include "guest.h"

static uv_poll_t poll;
static uv_timer_t timer;

static void on_timer(uv_timer_t *handle)
{
    host_timer();
    uv_close((uv_handle_t *)handle, NULL);
}

// [begin]
static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    weir_loop_step(handle->data); // runs those tasks that can run
    if (over)
        uv_close((uv_handle_t *)handle, NULL);
}

static void run(uv_loop_t *uv, struct weir_loop *loop)
{
    uv_poll_init(uv, &poll, weir_loop_fd(loop));
    poll.data = loop;
    uv_poll_start(&poll, UV_READABLE, on_readable);
    uv_run(uv, UV_RUN_DEFAULT);
}
// [end]

int main(void)
{
    uv_loop_t *uv = uv_default_loop();
    struct weir_loop *loop = guest_open();

    MUST(uv_timer_init(uv, &timer) == 0);
    MUST(uv_timer_start(&timer, on_timer, 20, 0) == 0);
    run(uv, loop);
    weir_loop_close(loop);
    uv_loop_close(uv);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "cli/notice.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/event.h>

#include "cli/say.h"
#include "cli/text.h"
#include "cli/units.h"

static struct {
    struct weir_store *store;
    const char *name;
    struct weir_event over;
    pthread_t thread;
    bool begun;
} notice;

static const char *ordinal(size_t n)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};

    return n / 10 % 10 == 1 || n % 10 > 3 ? "th" : endings[n % 10];
}

/* "psql -c ... (pid 4711, for 3.2s)", as many as there is room for. */
static void list_holders(const struct weir_name_stats *stats, char *text, size_t bytes)
{
    int64_t now_ns = weir_now_ns();
    size_t at = 0;

    for (size_t i = 0; i < stats->leases && i < 3 && at < bytes; i++) {
        const struct weir_lease_info *l = &stats->lease[i];
        char age[DURATION_BYTES], label[TEXT_CLEAN(WEIR_LABEL_MAX)];

        text_clean(l->label, label, sizeof label);
        text_cut(label, 40);
        at +=
            (size_t)snprintf(text + at, bytes - at, "%s%s%s(pid %d, for %s)", i ? ", " : "", label,
                             *label ? " " : "", l->pid, print_duration(now_ns - l->since_ns, age));
    }
    if (stats->leases > 3 && at < bytes)
        snprintf(text + at, bytes - at, " and %zu more", stats->leases - 3);
}

static int tell(const struct weir_name_stats *stats, void *arg)
{
    char holders[512] = "nobody";
    size_t place = 1;

    (void)arg;
    if (strcmp(stats->name, notice.name) != 0)
        return 0;
    while (place <= stats->waiters && stats->waiter[place - 1].pid != getpid())
        place++;
    if (place > stats->waiters)
        return 1; /* served just now */
    list_holders(stats, holders, sizeof holders);
    say("waiting for a slot of \"%s\": %zu%s in line; held by %s", stats->name, place,
        ordinal(place), holders);
    return 1;
}

static void *notice_main(void *arg)
{
    (void)arg;
    if (weir_event_wait(&notice.over, weir_within(WEIR_S)) == WEIR_ETIMEDOUT)
        weir_store_visit(notice.store, tell, NULL);
    return NULL;
}

void notice_begin(struct weir_store *store, const char *name)
{
    notice.store = store;
    notice.name = name;
    weir_event_init(&notice.over);
    notice.begun = pthread_create(&notice.thread, NULL, notice_main, NULL) == 0;
}

void notice_end(void)
{
    if (!notice.begun)
        return;
    weir_event_set(&notice.over);
    pthread_join(notice.thread, NULL);
    notice.begun = false;
}

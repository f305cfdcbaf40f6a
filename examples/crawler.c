/* SPDX-License-Identifier: MIT */
/* crawler - fetch a page, the pages it links to, and so on, three at a time. */
#include <string.h>

#include "example.h"

/* A web of nine pages, in memory: each is a letter, and so are its links. */
static const char *const web[] = {
    ['a'] = "bcde", ['b'] = "cf", ['c'] = "ag", ['d'] = "gh", ['e'] = "",
    ['f'] = "i",    ['g'] = "fi", ['h'] = "",   ['i'] = "a"};

static int running, most;

/* Takes a moment, as a network would. */
static int get(char page, const char **ret_links)
{
    int r;

    if (++running > most)
        most = running;
    r = weir_task_sleep(weir_within(WEIR_MS));
    running--;
    *ret_links = web[(unsigned char)page];
    return r;
}

// [begin]
static char found[10]; // pages, in the order of discovery
static size_t count;

static int fetch(void *ctx, size_t index)
{
    const char *pages = ctx, *links;
    int r = get(pages[index], &links); // waits, and others run

    if (r < 0)
        return r; // no new one is started then
    for (; *links; links++)
        if (!strchr(found, *links)) // one worker: needs no lock
            found[count++] = *links;
    return 0;
}

static int crawl(void *arg)
{
    struct weir_deadline end = weir_within(10 * WEIR_S);
    size_t done = 0, n;
    int r = 0;

    (void)arg;
    found[count++] = 'a';
    while (r == 0 && (n = count - done) > 0) {
        printf("fetching %s\n", found + done);
        r = weir_map_limit(n, 3, fetch, found + done, end);
        done += n;
    }
    return r;
}
// [end]

int main(void)
{
    MUST(weir_run(NULL, crawl, NULL) == 0);
    printf("%zu pages, at most %d at once\n", count, most);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* echo - a server with a task for each connection, and its clients, one of them rude. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "example.h"

enum { CLIENTS = 3 };

static struct sockaddr_in address;

static int listen_locally(void)
{
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    MUST(listen(fd, CLIENTS) == 0);
    MUST(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    return fd;
}

// [begin]
static int echo(void *arg)
{
    struct weir_deadline end = weir_within(30 * WEIR_S);
    int fd = (int)(intptr_t)arg;
    char text[512];
    ssize_t n;

    while ((n = weir_read(fd, text, sizeof text, end)) > 0)
        if (weir_write(fd, text, (size_t)n, end) < n)
            break;
    weir_close(fd);
    return 0; // a failure would end all other connections
}

static int serve(void *arg)
{
    struct weir_scope scope; // ends when every connection has
    int door = *(int *)arg, fd;

    weir_scope_open(&scope, WEIR_FOREVER);
    while ((fd = weir_accept(door, NULL, NULL, WEIR_FOREVER)) >= 0)
        if (weir_scope_spawn(&scope, echo, (void *)(intptr_t)fd) < 0)
            weir_close(fd); // nobody else will
    return weir_scope_close(&scope);
}
// [end]

struct client {
    char question[16], answer[16];
};

/* Returns its connection, which has been served. */
static int talk(struct client *client)
{
    size_t bytes = strlen(client->question);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    MUST(weir_connect(fd, (struct sockaddr *)&address, sizeof address, WEIR_FOREVER) == 0);
    MUST(weir_write(fd, client->question, bytes, WEIR_FOREVER) == (ssize_t)bytes);
    for (size_t got = 0; got < bytes;) {
        ssize_t n = weir_read(fd, client->answer + got, bytes - got, WEIR_FOREVER);

        MUST(n > 0);
        got += (size_t)n;
    }
    return fd;
}

static int ask(void *arg)
{
    return weir_close(talk(arg));
}

/* Leaves with a reset: the server's read fails. */
static void be_rude(void)
{
    struct client client = {"rude", ""};
    struct linger at_once = {1, 0};
    int fd = talk(&client);

    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    MUST(weir_close(fd) == 0);
    puts("rude: resets its connection");
}

static int program(void *arg)
{
    struct client clients[CLIENTS] = {{"one", ""}, {"two", ""}, {"three", ""}};
    void *const args[CLIENTS] = {&clients[0], &clients[1], &clients[2]};
    int listener = listen_locally();
    struct weir_task server;

    (void)arg;
    MUST(weir_task_spawn(serve, &listener, &server) == 0);
    be_rude();
    MUST(weir_gather(CLIENTS, ask, args, NULL, weir_within(20 * WEIR_S)) == 0);
    for (int i = 0; i < CLIENTS; i++)
        printf("%s -> %s\n", clients[i].question, clients[i].answer);
    weir_task_cancel(server);
    MUST(weir_task_join(server, WEIR_FOREVER, NULL) == 0);
    return weir_close(listener);
}

int main(void)
{
    MUST(weir_run(NULL, program, NULL) == 0);
    return 0;
}

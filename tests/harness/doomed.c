/* SPDX-License-Identifier: MIT */
/* CHECK_ABORTS: what must end its process is run in a copy of it. */
#include "harness/test.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct test_doomed test_doomed_begin(void)
{
    int said[2];

    CHECK_EQ(pipe(said), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(said[1], STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    }
    close(said[1]);
    return (struct test_doomed){pid, said[0]};
}

_Noreturn void test_doomed_survived(void)
{
    _exit(0);
}

void test_doomed_check(const char *file, int line, const char *statement, struct test_doomed d,
                       const char *text)
{
    char said[1024];
    size_t length = 0;
    ssize_t n;
    int status;

    while (length < sizeof said - 1 &&
           (n = read(d.said_fd, said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)n;
    said[length] = '\0';
    close(d.said_fd);
    CHECK_EQ(waitpid(d.pid, &status, 0), d.pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        test_fail(file, line, "%s: did not abort; it said \"%s\"", statement, said);
    if (strstr(said, text) == NULL)
        test_fail(file, line, "%s: said \"%s\", want \"%s\"", statement, said, text);
}

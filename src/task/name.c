/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <weir/error.h>

#include "base/lock.h"
#include "task/task.h"

/* Dumps read the names of tasks that run elsewhere. */
static lock names;

int weir_task_set_name(const char *name)
{
    task *t = task_current();

    if (t == NULL)
        return WEIR_ECONTEXT;
    size_t bytes = strnlen(name, TASK_NAME_BYTES - 1);
    lock_take(&names);
    memmove(t->body->name, name, bytes); /* it may be a part of the old one */
    memset(t->body->name + bytes, 0, TASK_NAME_BYTES - bytes);
    lock_drop(&names);
    return 0;
}

const char *weir_task_name(void)
{
    task *t = task_current();

    return t ? t->body->name : "";
}

void body_clear_name(struct body *b)
{
    if (b->name[0] == '\0')
        return;
    lock_take(&names);
    b->name[0] = '\0';
    lock_drop(&names);
}

void body_copy_name(const struct body *b, char to[TASK_NAME_BYTES])
{
    lock_take(&names);
    memcpy(to, b->name, TASK_NAME_BYTES);
    lock_drop(&names);
}

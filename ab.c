#define main main_switch
#define questions questions_switch
#define go_channel gc1
#define FEW FEW1
#include "/tmp/perf-base/bench/task_switch.c"
#undef main
#undef questions
#undef go_channel
#undef FEW
#define main main_spawn
#define questions questions_spawn
#define go_channel gc2
#define FEW FEW2
#include "/tmp/perf-base/bench/task_spawn.c"
#undef main
#undef questions
#undef go_channel
#define main main_sem
#define questions questions_sem
#define weir_one weir_one_sem
#define tokio_one tokio_one_sem
#define TASKS TASKS_sem
#include "/tmp/perf-base/bench/sem_tasks.c"
#undef main
#undef questions
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#undef weir_one
int main(int c, char**v){
 struct { const char*n; double(*f)(void);} t[]={{"yield",weir_yield},{"handoff",weir_handoff},{"forever",weir_handoff_forever},{"spawn",weir_one},{"spawn1000",weir_batch},{"sem",weir_one_sem},{"sem2",weir_two}};
 int rep = c>2?atoi(v[2]):1;
 for(size_t i=0;i<sizeof t/sizeof*t;i++) if(!strcmp(v[1],t[i].n)) for(int k=0;k<rep;k++) printf("%.2f\n",t[i].f());
 return 0;}

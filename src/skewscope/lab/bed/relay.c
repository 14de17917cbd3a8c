/* Delays, jitters, reorders and drops the frames of one switch port in user space (this kernel may lack netem).

   relay UP DOWN PORT DIRECTION SEED
   Uplink frames arrive on the TAP device UP, to which tc redirects what comes in at PORT, and leave on the TAP
   device DOWN, a port of the bridge. Downlink frames arrive on DOWN and leave through PORT. DIRECTION is up,
   down or both: frames of the other direction pass at once. Standard input takes lines
   "DELAY_us JITTER_us REORDER_ratio LOSS_ratio"; the last one holds. Order is kept, but for the frames that
   overtake: a share of REORDER_ratio does not wait. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { UPLINK, DOWNLINK, MAX_HELD = 65536, MAX_FRAME = 10000, BATCH = 64 };

struct frame {
    long long due_ns;
    int length, direction;
    unsigned char bytes[];
};

static struct frame *heap[MAX_HELD];
static int held;
static unsigned long long state;

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static double uniform(void) { /* xorshift64; 0 <= x < 1 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) / 9007199254740992.0;
}

static void push(struct frame *f) {
    int i = held++;
    while (i && heap[(i - 1) / 2]->due_ns > f->due_ns) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = f;
}

static struct frame *pop(void) {
    struct frame *top = heap[0], *last = heap[--held];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= held)
            break;
        if (child + 1 < held && heap[child + 1]->due_ns < heap[child]->due_ns)
            child++;
        if (heap[child]->due_ns >= last->due_ns)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

static int open_tap(const char *name) {
    struct ifreq request = {0};
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &request) < 0) {
        perror("tap device");
        exit(1);
    }
    return tap;
}

static int open_port(const char *name) {
    int port = socket(AF_PACKET, SOCK_RAW, 0);
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(name)};
    if (port < 0 || bind(port, (struct sockaddr *)&at, sizeof at) < 0) {
        perror("port");
        exit(1);
    }
    return port;
}

static double delay_us, jitter_us, reorder, loss;
static int affected[2];
static long long last_due_ns[2];

static void take(int direction, const unsigned char *bytes, int length) {
    if (held == MAX_HELD || (affected[direction] && uniform() < loss))
        return;
    struct frame *f = malloc(sizeof *f + (size_t)length);
    if (f == NULL)
        return;
    f->length = length;
    f->direction = direction;
    f->due_ns = now_ns();
    memcpy(f->bytes, bytes, (size_t)length);
    if (affected[direction] && uniform() >= reorder) {
        f->due_ns += (long long)(1e3 * (delay_us + jitter_us * (2 * uniform() - 1)));
        if (f->due_ns <= last_due_ns[direction])
            f->due_ns = last_due_ns[direction] + 1;
        last_due_ns[direction] = f->due_ns;
    }
    push(f);
}

int main(int count, char **words) {
    if (count != 6) {
        fprintf(stderr, "usage: relay UP DOWN PORT up|down|both SEED\n");
        return 2;
    }
    int up = open_tap(words[1]), down = open_tap(words[2]), port = open_port(words[3]);
    affected[UPLINK] = strcmp(words[4], "down") != 0;
    affected[DOWNLINK] = strcmp(words[4], "up") != 0;
    state = 88172645463325252ULL ^ ((unsigned long long)atoll(words[5]) * 2654435761ULL);
    for (int i = 0; i < 10; i++)
        uniform();
    static unsigned char bytes[MAX_FRAME];
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        while (held && heap[0]->due_ns <= now_ns()) {
            struct frame *f = pop();
            ssize_t sent = f->direction == UPLINK ? write(down, f->bytes, (size_t)f->length)
                                                  : send(port, f->bytes, (size_t)f->length, 0);
            if (sent < 0)
                perror("frame");
            free(f);
        }
        long long wait = held ? heap[0]->due_ns - now_ns() : 1000000000LL;
        if (wait < 0)
            wait = 0;
        struct timespec limit = {wait / 1000000000LL, wait % 1000000000LL};
        struct pollfd ready[3] = {{up, POLLIN, 0}, {down, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        ppoll(ready, 3, &limit, NULL);
        if (ready[2].revents) {
            char line[200];
            if (fgets(line, sizeof line, stdin) == NULL)
                return 0;
            sscanf(line, "%lf %lf %lf %lf", &delay_us, &jitter_us, &reorder, &loss);
        }
        for (int direction = UPLINK; direction <= DOWNLINK; direction++)
            for (int i = 0; i < BATCH; i++) {
                ssize_t length = read(direction == UPLINK ? up : down, bytes, sizeof bytes);
                if (length <= 0)
                    break;
                take(direction, bytes, (int)length);
            }
    }
}

// Preloaded into libvirt: makes it dawdle between marking a domain as being removed and taking it off
// its list (virDomainObjListRemove), which its event thread needs the list's lock for.

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>

extern "C" int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    using Function = int (*)(pthread_rwlock_t *);
    static const auto original =
        reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_rwlock_wrlock"));
    char thread[16] = "";
    pthread_getname_np(pthread_self(), thread, sizeof thread);
    if (std::strcmp(thread, "qemu-event") == 0) {
        usleep(500 * 1000);
    }
    return original(lock);
}

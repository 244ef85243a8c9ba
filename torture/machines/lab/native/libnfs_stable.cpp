// Preloaded into a client's QEMU. Every write over NFS is stable (FILE_SYNC), as from a hypervisor
// that trusts no server's memory.
//
// libnfs asks for stable writes where a file was opened with O_SYNC (its lib/nfs_v3.c); QEMU never
// does (its block/nfs.c). QEMU loads its NFS driver, and libnfs with it, when a disk needs it. That
// is after this library and out of reach of RTLD_NEXT, so libnfs is opened by its name, of Debian
// 12 or of 13.

#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <initializer_list>

struct nfs_context;
struct nfsfh;

namespace {

using Open = int (*)(nfs_context *, const char *, int, nfsfh **);

Open open_of_libnfs() {
    for (const char *name : {"libnfs.so.13", "libnfs.so.14"}) {
        if (void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
            return reinterpret_cast<Open>(dlsym(library, "nfs_open"));
        }
    }
    return nullptr;
}

}  // namespace

extern "C" int nfs_open(nfs_context *context, const char *path, int flags, nfsfh **file) {
    const Open next = open_of_libnfs();
    return next == nullptr ? -ENOSYS : next(context, path, flags | O_SYNC, file);
}

/*
 * The differences among the versions of OpenZFS, by the headers of each. VERSION is the one that the programs are
 * compiled for: 20309 is 2.3.9.
 */
#ifndef TORTURE_VERSIONS_H
#define TORTURE_VERSIONS_H

#if VERSION < 20200
/* it keeps the log open, and changes none of these */
#define OPEN_LOG(objects) zil_open(objects, NULL)
#define REPLAY_LOG(objects, volume, replay) (zil_replay(objects, volume, (zil_replay_func_t **)(uintptr_t)replay), true)
#define LOOKUP_STRING(list, name, value) nvlist_lookup_string(list, name, (char **)(uintptr_t)value)
#define ADD_LISTS(list, name, lists, count) fnvlist_add_nvlist_array(list, name, (nvlist_t **)(uintptr_t)lists, count)
#define FIND_CONFIG(zfs, pool, config, wanted) zpool_find_config(zfs, pool, config, wanted, &libzfs_config_ops)
#else
#define OPEN_LOG(objects) zil_open(objects, NULL, NULL)
#define REPLAY_LOG(objects, volume, replay) zil_replay(objects, volume, replay)
#define LOOKUP_STRING(list, name, value) nvlist_lookup_string(list, name, value)
#define ADD_LISTS(list, name, lists, count) fnvlist_add_nvlist_array(list, name, (const nvlist_t *const *)lists, count)
#define FIND_CONFIG(zfs, pool, config, wanted) \
  zpool_find_config(&(libpc_handle_t){.lpc_ops = &libzfs_config_ops, .lpc_lib_handle = zfs}, pool, config, wanted)
#endif

#if VERSION < 20300
#define ZIO_TYPE_FLUSH ZIO_TYPE_IOCTL
#endif
#if VERSION < 20302
#define DMU_TX_WAIT TXG_WAIT
#endif

#if VERSION < 20400
#define WRITE_OBJECT(objects, object, offset, length, data, tx) dmu_write(objects, object, offset, length, data, tx)
#define SIZES_OF_VDEV .vdev_op_asize = vdev_default_asize
#else
#define WRITE_OBJECT(objects, object, offset, length, data, tx) \
  dmu_write(objects, object, offset, length, data, tx, DMU_READ_PREFETCH)
#define SIZES_OF_VDEV .vdev_op_psize_to_asize = vdev_default_asize, .vdev_op_asize_to_psize = vdev_default_psize
#endif

#endif

import type { Snapshot } from './snapshot.ts';

/** Arguments with the devices and device names of the snapshot, without jail, limits and system call filter. */
export function qemuArguments(snapshot: Snapshot, directory: string): string[] {
  const { accel, cpu, vcpu, memoryMib, rootfs } = snapshot;
  const memory = [
    `memory-backend-file,id=memory,size=${memoryMib}M`,
    `mem-path=${snapshot.directory}/memory`,
    'share=off,readonly=on,rom=off',
  ].join(',');
  const base = {
    'node-name': 'base',
    driver: 'raw',
    file: { driver: 'file', filename: rootfs, locking: 'off', 'read-only': true },
    'read-only': true,
  };
  const cache = { direct: false, 'no-flush': true };
  const disk = {
    'node-name': 'disk',
    driver: 'qcow2',
    discard: 'unmap',
    cache,
    backing: 'base',
    file: {
      driver: 'file',
      filename: `${directory}/disk.qcow2`,
      discard: 'unmap',
      locking: 'off',
      cache,
    },
  };
  return [
    ['-nodefaults', '-no-user-config', '-display', 'none'],
    ['-M', 'microvm,memory-backend=memory', '-accel', accel, '-cpu', cpu],
    ['-smp', String(vcpu), '-m', `${memoryMib}M`, '-object', memory],
    ['-chardev', 'ringbuf,id=console,size=65536', '-serial', 'chardev:console'],
    ['-qmp', `unix:${directory}/qmp,server=on,wait=off`],
    ['-blockdev', JSON.stringify(base), '-blockdev', JSON.stringify(disk)],
    ['-device', 'virtio-blk-device,id=root,drive=disk,werror=report,rerror=report'],
    ['-netdev', 'tap,id=net,ifname=tap0,script=no,downscript=no'],
    ['-device', 'virtio-net-device,netdev=net,mac=02:00:00:00:00:02'],
    ['-S', '-incoming', 'defer'],
  ].flat();
}

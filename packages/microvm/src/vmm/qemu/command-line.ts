import { GUEST_LINK } from '@svc/contract';
import { TAP } from '../../network/index.ts';
import type { VmShape } from '../../vm-shape.ts';
import { translationCacheMib } from '../translation-cache.ts';
import type { BootRequest, RestoreVmRequest } from '../vmm.ts';
import { CONTROL_SOCKET } from './control-socket.ts';

/** Size of the ring buffer for console output. */
const CONSOLE_BYTES = 65_536;

export interface Accelerator {
  readonly kind: 'kvm' | 'tcg';
  readonly cpu: string;
}

/** The file behind a VM's memory, and how it is mapped. */
export interface MemorySource {
  readonly path: string;
  readonly mapping: 'shared' | 'private' | 'private-read-only';
}

/** QEMU's arguments for a VM that boots from a kernel. */
export function bootArguments(
  request: BootRequest,
  accelerator: Accelerator,
  memory: MemorySource,
  tscKhz: number,
): string[] {
  const kernelParameters = [
    'console=ttyS0',
    'reboot=t',
    'panic=-1',
    'net.ifnames=0',
    'quiet',
    ...(accelerator.kind === 'tcg' ? emulatedClock(tscKhz) : []),
    // For programs in the guest that need other settings under emulation.
    `svc.accelerator=${accelerator.kind}`,
  ];
  return [
    ...machine(request, accelerator, memory),
    '-kernel',
    request.kernel,
    '-initrd',
    request.initrd,
    '-append',
    kernelParameters.join(' '),
  ];
}

/**
 * Kernel parameters for the clock of an emulated guest; KVM has a clock of its own. On a busy machine, the calibration
 * of the time stamp counter can hang forever, and its comparison with other clocks fails: the guest, and every clone of
 * its snapshot, would fall back to a clock of 4 ms and to a timer that never rests.
 */
function emulatedClock(tscKhz: number): string[] {
  return [`tsc_early_khz=${tscKhz}`, 'tsc=reliable'];
}

/**
 * QEMU's arguments for a VM that waits for the state of a snapshot. They name no kernel, because loading one would only
 * cost time and memory.
 */
export function restoreArguments(
  request: RestoreVmRequest,
  accelerator: Accelerator,
  memory: MemorySource,
): string[] {
  return [...machine(request, accelerator, memory), '-S', '-incoming', 'defer'];
}

function machine(
  request: BootRequest | RestoreVmRequest,
  { kind, cpu }: Accelerator,
  memory: MemorySource,
): string[] {
  const { confinement, rootfs, ...shape } = request;
  const directory = confinement.insideDirectory;
  const accel = kind === 'kvm' ? 'kvm' : `tcg,tb-size=${translationCacheMib(shape)}`;
  return [
    ['-nodefaults', '-no-user-config', '-display', 'none'],
    ['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ['-M', 'microvm,memory-backend=memory'],
    ['-accel', accel],
    ['-cpu', cpu],
    ['-smp', String(shape.vcpu)],
    ['-m', `${ramMib(shape)}M`],
    ['-object', memoryOptions(shape, memory)],
    ['-chardev', `ringbuf,id=console,size=${CONSOLE_BYTES}`],
    ['-serial', 'chardev:console'],
    ['-qmp', `unix:${directory}/${CONTROL_SOCKET},server=on,wait=off`],
    ...rootfs.map((file, index) => ['-blockdev', blockdev(diskFile(file, index))]),
    ['-blockdev', blockdev(overlay(`${directory}/disk.qcow2`, fileNode(rootfs.length - 1)))],
    // A guest that writes while the host's disk is full is stopped until space is available. An error would make its
    // file system read-only and lose data that the guest believes written.
    ['-device', 'virtio-blk-device,id=root,drive=disk,werror=enospc,rerror=report'],
    ['-netdev', `tap,id=net,ifname=${TAP},script=no,downscript=no`],
    ['-device', `virtio-net-device,netdev=net,mac=${GUEST_LINK.guestMac}`],
  ].flat();
}

/**
 * With exactly 2 GiB, QEMU loads the initial RAM disk up to the last byte, into the pages in which the firmware keeps the
 * rings of the root disk: the guest does not boot, or starts damaged programs.
 */
function ramMib({ memoryMib }: VmShape): number {
  return memoryMib === 2048 ? 2047 : memoryMib;
}

function memoryOptions(shape: VmShape, { path, mapping }: MemorySource): string {
  const options = `memory-backend-file,id=memory,size=${ramMib(shape)}M,mem-path=${path}`;
  if (mapping === 'shared') return `${options},share=on`;
  return mapping === 'private'
    ? `${options},share=off`
    : `${options},share=off,readonly=on,rom=off`;
}

function blockdev(options: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(options);
}

/** One file of a `DiskImage`. Names its backing file, so that QEMU does not look for the one that is named inside. */
function diskFile(filename: string, index: number) {
  return {
    'node-name': fileNode(index),
    ...(index === 0 ? { driver: 'raw' } : { driver: 'qcow2', backing: fileNode(index - 1) }),
    file: { driver: 'file', filename, locking: 'off', 'read-only': true },
    'read-only': true,
  };
}

function fileNode(index: number): string {
  return index === 0 ? 'base' : `layer${index}`;
}

/** Flushing is pointless: the disk outlives neither its VM nor a crash of the machine. */
function overlay(filename: string, backing: string) {
  return {
    'node-name': 'disk',
    driver: 'qcow2',
    discard: 'unmap',
    cache: { direct: false, 'no-flush': true },
    backing,
    file: {
      driver: 'file',
      filename,
      discard: 'unmap',
      locking: 'off',
      cache: { direct: false, 'no-flush': true },
    },
  };
}

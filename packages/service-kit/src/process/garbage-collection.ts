import { setFlagsFromString } from 'node:v8';

/**
 * Lets V8 count buffers as part of the heap when it decides about the next collection. By default it collects after each
 * 64 MiB of new buffers, however short they live: a service that passes on many bytes then marks its whole heap several
 * times a second, which takes a core and holds up every request. To be called once, at the start of a service.
 * `external-memory-accounted-in-global-limit` in https://chromium.googlesource.com/v8/v8/+/main/src/flags/flag-definitions.h
 */
export function countBuffersAsHeap(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit');
}

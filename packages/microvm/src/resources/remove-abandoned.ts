import { FileLockedError } from '@svc/service-kit/process';
import { underBuildLock } from '../image/build/build-lock.ts';
import { buildsWithDirectories, removeWorkDirectories } from '../image/build/work-directory.ts';
import { removeAbandonedPulls } from '../image/distribution/pull-directory.ts';
import { openCgroups } from '../jail/cgroups/open-cgroups.ts';
import { type Instance, releaseOrphans, removeNetwork } from '../network/index.ts';

/**
 * Removes what killed processes left on this machine and no restart of theirs will find: the files of interrupted builds
 * and pulls, and VMs, control groups, network slots, mounts and index of every instance whose data directory no longer exists.
 * The data directory of a snapshot's VM is a build's directory.
 *
 * @throws the first failure of a directory of a build or a pull; CleanupError with the failures of the instances
 */
export async function removeAbandoned(imageDir: string): Promise<void> {
  for (const build of await buildsWithDirectories(imageDir)) {
    try {
      await underBuildLock(imageDir, build, () => removeWorkDirectories(imageDir, build));
    } catch (error) {
      // It is still running.
      if (!(error instanceof FileLockedError)) throw error;
    }
  }
  await removeAbandonedPulls(imageDir);
  await releaseOrphans([
    { name: 'remove the control groups', run: removeCgroups },
    { name: 'remove the network', run: removeNetwork },
  ]);
}

async function removeCgroups({ name }: Instance): Promise<void> {
  const cgroups = await openCgroups(name, () => undefined);
  await cgroups.close();
}

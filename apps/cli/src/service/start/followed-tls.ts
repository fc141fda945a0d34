import type { ComponentContext } from './component.ts';
import { followTls, openTls, type ServiceTls } from './tls.ts';

const STOP_MS = 1_000;

/** The certificate of a service, which follows its files until the service shuts down. @throws CliError `ca_unreadable` */
export async function openFollowedTls({
  config,
  paths,
  logger,
  shutdown,
}: Pick<ComponentContext, 'config' | 'paths' | 'logger' | 'shutdown'>): Promise<ServiceTls> {
  const tls = await openTls(config, paths);
  const stop = new AbortController();
  const following = followTls(tls, config, paths, { logger, signal: stop.signal });
  shutdown.add({
    name: 'certificate',
    phase: 'close',
    deadlineMs: STOP_MS,
    run: () => {
      stop.abort();
      return following;
    },
  });
  return tls;
}

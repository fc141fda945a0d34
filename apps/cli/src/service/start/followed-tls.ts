import type { ComponentContext } from './component.ts';
import { followUntilShutdown } from './follow-files.ts';
import { openTls, rereadTls, type ServiceTls } from './tls.ts';

/** The certificate of a service, which follows its files until the service shuts down. @throws CliError `ca_unreadable` */
export async function openFollowedTls(
  context: Pick<ComponentContext, 'config' | 'paths' | 'logger' | 'shutdown'>,
): Promise<ServiceTls> {
  const { config, paths } = context;
  const tls = await openTls(config, paths);
  if (tls.server !== undefined) {
    followUntilShutdown('certificate', () => rereadTls(tls, config, paths), context);
  }
  return tls;
}

import { freePorts } from '@svc/service-kit/testing';

export interface EnvironmentOptions {
  /** Variables of the service, over those that tests set. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Listen on every address of the machine instead of localhost only. */
  readonly listenEverywhere?: boolean | undefined;
}

/**
 * The environment of a service under test: nothing of the caller's own settings but the cache of images,
 * which are too slow to build for each test.
 */
export async function environment(
  dataDir: string,
  { env = {}, listenEverywhere = false }: EnvironmentOptions = {},
): Promise<NodeJS.ProcessEnv> {
  const [control, runtime] = await freePorts(2);
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      name === 'SVC_IMAGE_DIR' || !/^(SVC_|VITEST|NODE_OPTIONS$|NODE_ENV$|TEST$)/.test(name),
  );
  return {
    ...Object.fromEntries(inherited),
    SVC_DATA_DIR: dataDir,
    SVC_LISTEN: `${listenEverywhere ? '0.0.0.0' : 'localhost'}:${control}`,
    SVC_RUNTIME_LISTEN: `localhost:${runtime}`,
    SVC_POOL: 'standard=1',
    SVC_LIMIT_OTP_PER_EMAIL_PER_HOUR: '100000',
    SVC_LIMIT_OTP_PER_IP_PER_HOUR: '100000',
    ...env,
  };
}

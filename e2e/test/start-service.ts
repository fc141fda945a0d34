import { DetachedService, PrivateService, type PrivateServiceOptions } from '@svc/service-driver';

/** Each test signs up with an address of its own, all from one IP address. */
const LIMITS = {
  SVC_LIMIT_OTP_PER_EMAIL_PER_HOUR: '100000',
  SVC_LIMIT_OTP_PER_IP_PER_HOUR: '100000',
  SVC_LIMIT_OTP_WRONG_PER_IP_PER_HOUR: '100000',
};

/** Starts a private service for tests. `E2E_LOG_DIR` names a directory in which its log is kept. */
export async function startService(options: PrivateServiceOptions = {}): Promise<PrivateService> {
  return PrivateService.start({
    keepLogIn: process.env.E2E_LOG_DIR,
    ...options,
    env: { ...LIMITS, ...options.env },
  });
}

/** Starts a service for tests in the background, with `svc up --detach`. */
export async function startDetachedService(): Promise<DetachedService> {
  return DetachedService.start({ env: LIMITS });
}

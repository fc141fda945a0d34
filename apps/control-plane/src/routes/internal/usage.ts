import { INTERNAL_PREFIX, ReportUsageRequest, ReportUsageResponse } from '@svc/contract';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { Route } from '../../services.ts';
import { WORKER_BODY_BYTES } from './body-limits.ts';

/** `POST /internal/v1/usage`: what the sandboxes of a worker have used. */
export const reportUsage: Route<'componentAuth' | 'usageReports'> = (
  app,
  { componentAuth, usageReports },
) => {
  app.post(
    `${INTERNAL_PREFIX}/usage`,
    {
      onRequest: componentAuth.worker,
      bodyLimit: WORKER_BODY_BYTES,
      schema: { hide: true, body: ReportUsageRequest, response: { 200: ReportUsageResponse } },
    },
    (request) => usageReports.take(workerOf(request), request.body.samples),
  );
};

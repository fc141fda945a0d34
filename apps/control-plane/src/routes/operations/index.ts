import type { Route } from '../../services.ts';
import { health } from './health.ts';
import { metricsPage } from './metrics.ts';
import { openapiDocument } from './openapi.ts';
import { readiness } from './ready.ts';
import { referencePage } from './reference.ts';

export const operationRoutes: readonly Route[] = [
  health,
  readiness,
  metricsPage,
  openapiDocument,
  referencePage,
];

import type { Route } from '../../services.ts';
import { dailyUsage } from './daily-usage.ts';
import { dashboardOverview } from './overview.ts';
import { dashboardSandboxes } from './sandboxes.ts';

export const dashboardRoutes: readonly Route[] = [
  dashboardOverview,
  dashboardSandboxes,
  dailyUsage,
];

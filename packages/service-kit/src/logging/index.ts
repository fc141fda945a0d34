export { FailureLog, FailureLogs } from './failure-log.ts';
export { createLogger, type Logger, type LoggerOptions } from './logger.ts';
export { prettyLine } from './pretty.ts';

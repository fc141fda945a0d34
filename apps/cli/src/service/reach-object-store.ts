/** Only the code of the service imports other apps. */
export { reachS3 } from '@svc/control-plane';

import { INTERNAL_PREFIX, ServiceError } from '@svc/contract';

/** Keeps the public out while the service ends, but not its workers, whose last words still count. */
export class Gate {
  #open = true;

  shut(): void {
    this.#open = false;
  }

  /** @throws ServiceError `shutting_down` for a public URL once the gate is shut */
  check(url: string): void {
    if (!this.#open && !url.startsWith(INTERNAL_PREFIX)) throw new ServiceError('shutting_down');
  }
}

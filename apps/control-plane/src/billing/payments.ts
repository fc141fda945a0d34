/** A purchase of credit. */
export interface Purchase {
  readonly tenantId: string;
  /** Cents. */
  readonly amount: number;
}

/** A way to pay for credit. */
export interface PaymentProvider {
  /**
   * Begins a purchase. Returns the URL of the page on which the customer pays.
   * @throws ServiceError `payment_provider_unavailable`
   */
  checkout(purchase: Purchase, signal: AbortSignal): Promise<string>;
}

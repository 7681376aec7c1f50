/** So many of a SKU. */
export interface Line {
  readonly sku: string
  readonly quantity: number
}

/** Goods from a supplier. The id is the supplier's; so it is with all that follows. */
export interface Delivery {
  readonly id: string
  readonly lines: readonly Line[]
}

/** An order, of this shop or of a marketplace. */
export interface NewOrder {
  readonly id: string
  readonly source: string
  readonly lines: readonly Line[]
}

/** Goods that a customer sent back. */
export interface NewReturn {
  readonly id: string
  readonly orderId: string
  readonly lines: readonly Line[]
}

/** What became of it. None of these is a failure of the service. */
export type Outcome =
  | { readonly is: 'done' }
  /** It was done before, under this id. */
  | { readonly is: 'repeated' }
  | { readonly is: 'short'; readonly missing: readonly Line[] }
  | { readonly is: 'refused'; readonly reason: string }

/** The shop, as the HTTP service sees it. */
export interface Shop {
  deliver(delivery: Delivery): Promise<Outcome>
  takeOrder(order: NewOrder): Promise<Outcome>
  takeReturn(returned: NewReturn): Promise<Outcome>
}

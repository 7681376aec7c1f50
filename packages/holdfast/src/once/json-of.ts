/**
 * What JSON gives back of a value: a date is text, what has `toJSON` is what that gives, properties that are a
 * function, a symbol or `undefined` are left out, and in a list they are null. A bigint cannot be kept at all, and is
 * `never`. Of what is read as a class, such as a `Map`, only its properties stay.
 *
 * @example JsonOf<{ at: Date; note?: string }> // { at: string; note?: string }
 */
export type JsonOf<T> =
  IsAny<T> extends true
    ? T
    : unknown extends T
      ? T
      : T extends string | number | boolean | null | undefined | void
        ? T
        : T extends bigint
          ? never
          : T extends { toJSON(...args: never): infer J }
            ? JsonOf<J>
            : T extends Dropped
              ? undefined
              : T extends readonly unknown[]
                ? { [K in keyof T]: InList<T[K]> }
                : { [K in keyof T as Kept<T, K>]: JsonOf<T[K]> }

type IsAny<T> = 0 extends 1 & T ? true : false

type Dropped = symbol | ((...args: never) => unknown)

/** A property that is never there: its name is a symbol, or its value cannot be written. */
type Kept<T, K extends keyof T> = K extends symbol
  ? never
  : [Exclude<T[K], undefined>] extends [Dropped]
    ? [Exclude<T[K], undefined>] extends [never]
      ? K
      : never
    : K

type InList<T> = T extends undefined | Dropped ? null : JsonOf<T>

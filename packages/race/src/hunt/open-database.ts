/** The hunt's own connection. What is wrong with a database is told with its name and host, and without its password. */
import { connectControl, type Control } from '../run/connection/control.ts'
import { assertRestoreRights } from '../run/state/restore-rights.ts'
import { databaseText } from '../run/connection/url.ts'

/** @throws Error if it cannot be reached, or if the role may not put its rows back */
export async function openDatabase(url: string): Promise<Control> {
  return named(url, async () => {
    const control = await connectControl(url)
    try {
      await assertRestoreRights(control.client)
      return control
    } catch (error) {
      await control.close()
      throw error
    }
  })
}

/** The same error, with the database before it. */
export async function named<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`${databaseText(url)}: ${message}`, { cause: error })
  }
}

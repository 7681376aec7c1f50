import { randomBytes } from 'node:crypto'
import { createConnection } from 'mysql2/promise'
import type { Ground } from './hunt.ts'
import { innodbPlaces, openInnodbLane } from './innodb-lane.ts'
import { innodbWords } from './innodb-words.ts'

/** Servers of one product; lanes are spread over them. */
export interface InnodbServers {
  readonly product: 'mariadb' | 'mysql'
  readonly urls: readonly string[]
}

export function innodbGround({ product, urls }: InnodbServers): Ground {
  return {
    words: innodbWords[product],
    places: innodbPlaces,
    lanesEach: urls.length,
    async openLane(place, index) {
      const url = new URL(urls[Math.floor(index / innodbPlaces.length) % urls.length] as string)
      const database = `lane_${randomBytes(5).toString('hex')}`
      const connection = await createConnection(url.href)
      await connection.query(`CREATE DATABASE ${database}`)
      await connection.end()
      url.pathname = `/${database}`
      return await openInnodbLane(place, url.href)
    },
  }
}

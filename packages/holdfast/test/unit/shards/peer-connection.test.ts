import { expect, test } from 'vitest'
import { peerConnection } from '../../../src/shards/peer-connection.ts'

const off = '-c row_security=off'
const sent = encodeURIComponent(off)

test.each([
  ['host=a user=ann dbname=b', 'ann', `host=a user=ann dbname=b options='${off}'`],
  [
    "user = 'an\\'n o' password='x user=bob'",
    "an'n o",
    `user = 'an\\'n o' password='x user=bob' options='${off}'`,
  ],
  ['user=ann user=bob', 'bob', `user=ann user=bob options='${off}'`],
  ['host=a', undefined, `host=a options='${off}'`],
  [
    "user=ann options='-c work_mem=1MB'",
    'ann',
    `user=ann options='-c work_mem=1MB' options='-c work_mem=1MB ${off}'`,
  ],
  ['', undefined, ` options='${off}'`],
  ["user=ann password = 'secret", undefined, "user=ann password = 'secret"],
  ['postgres://ann:b%40c@h:5432/d', 'ann', `postgres://ann:b%40c@h:5432/d?options=${sent}`],
  [
    'postgresql://an%20n@h/d?sslmode=require',
    'an n',
    `postgresql://an%20n@h/d?sslmode=require&options=${sent}`,
  ],
  ['postgresql://h/d?user=bob', 'bob', `postgresql://h/d?user=bob&options=${sent}`],
  [
    'postgres://ann@h/d?options=-c%20work_mem%3D1MB',
    'ann',
    `postgres://ann@h/d?options=-c%20work_mem%3D1MB%20${sent}`,
  ],
  ['postgres://ann:b?c@h/d', 'ann', `postgres://ann:b?c@h/d?options=${sent}`],
  ['postgres://h/d', undefined, `postgres://h/d?options=${sent}`],
  ['postgres://%@h/d', undefined, `postgres://%@h/d?options=${sent}`],
])('%s', (connection, user, unfiltered) => {
  expect(peerConnection(connection)).toEqual({ user, unfiltered })
})

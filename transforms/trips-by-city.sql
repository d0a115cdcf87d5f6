-- Every column as it comes, and the city, which the first three letters of a trip's id name.
SELECT *, substr(trip_id, 1, 3) AS city
FROM <SRC>

"""What a front end shows of a session, without saying how: no toolkit, no colours, no cells."""
